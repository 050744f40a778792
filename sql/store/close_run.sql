SELECT done_to, finished_ms FROM close_runs WHERE date = ?1
