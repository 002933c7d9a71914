"""What is PyTorch's own: modules, loaders, ranks, files of tensors."""
