INSERT INTO candle_histories (symbol, source, simulated, refetch) VALUES (?1, ?2, ?3, FALSE)
ON CONFLICT (symbol) DO UPDATE
SET source = excluded.source, simulated = excluded.simulated, refetch = FALSE
