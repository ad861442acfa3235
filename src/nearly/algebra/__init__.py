"""Pure mathematics under the plan algebra and the subsystems: no SQL, no Spark."""
