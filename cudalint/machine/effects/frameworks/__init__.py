"""Libraries built on frameworks: trainers, launchers, engines, searches."""
