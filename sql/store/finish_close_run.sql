INSERT INTO close_runs (date, finished_ms) VALUES (?1, ?2)
ON CONFLICT (date) DO UPDATE SET finished_ms = excluded.finished_ms
