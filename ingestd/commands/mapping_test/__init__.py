"""`ingestd test`: cases with records and the entries and rejections that a pipeline's mapping makes from these records."""
