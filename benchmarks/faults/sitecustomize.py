"""Python imports this at its start where the folder is on PYTHONPATH: the faults are methods then."""

import fault_methods

fault_methods.install()
