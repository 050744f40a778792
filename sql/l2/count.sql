SELECT count(*) FROM record
