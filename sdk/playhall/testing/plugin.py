"""The pytest plugin of the test harness."""
