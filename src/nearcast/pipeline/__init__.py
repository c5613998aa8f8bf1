"""The same engines inside Spark: functions from DataFrame to DataFrame around pure steps on Arrow batches.

`match_step` knows Arrow and nothing of Spark; `job` wires source, step and sink; `session` and `java` find what Spark
needs. A worker opens a saved matcher by memory map, so that tasks on one host share its pages.
"""
