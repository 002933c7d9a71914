"""torch.utils.collect_env."""
