"""The fixtures of the end-to-end tests."""
import importlib.util
import os
import sys

E2E = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e")
sys.path.insert(0, E2E)
spec = importlib.util.spec_from_file_location("e2e_conftest", os.path.join(E2E, "conftest.py"))
e2e = importlib.util.module_from_spec(spec)
spec.loader.exec_module(e2e)
globals().update({name: value for name, value in vars(e2e).items() if not name.startswith("__")})
