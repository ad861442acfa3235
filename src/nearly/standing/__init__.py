"""Standing queries (IQP and its planner DISS): answers kept current over data that still arrives, from little kept state.

Reference: Tang, Shang, Elmore, Krishnan, Franklin, "Intermittent Query Processing", PVLDB 12(11), 2019.
"""
