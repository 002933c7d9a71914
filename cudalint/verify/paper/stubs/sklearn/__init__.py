"""scikit-learn on paper: searches and validations that hand clones to the real joblib."""

import paper_driver as driver

__getattr__ = driver.lazy("sklearn", "base model_selection pipeline")
