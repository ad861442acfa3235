"""Who decides what is made and what goes: the learner, and the simpler rules that it is compared with."""
