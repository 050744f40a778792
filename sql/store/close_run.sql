SELECT 1 FROM close_runs WHERE date = ?1
