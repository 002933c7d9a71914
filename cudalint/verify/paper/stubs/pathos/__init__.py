"""pathos on paper: pools of the real multiprocess under other names."""

import paper_driver as driver

__getattr__ = driver.lazy("pathos", "multiprocessing pools helpers")
