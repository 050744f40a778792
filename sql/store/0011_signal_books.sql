-- How many dates' weight the prior had in a line's confidence. All lines so far were made with 300.
ALTER TABLE signal_ledger ADD COLUMN prior_dates INTEGER NOT NULL DEFAULT 300;
ALTER TABLE provisional_signals ADD COLUMN prior_dates INTEGER NOT NULL DEFAULT 300;

-- What was called a hit rate is the mean over dates of each date's share of hits. Signals and hits
-- of the window are counted beside it; NULL in the lines so far.
ALTER TABLE signal_ledger RENAME COLUMN hit_rate TO date_hit_rate;
ALTER TABLE signal_ledger ADD COLUMN past_signals INTEGER;
ALTER TABLE signal_ledger ADD COLUMN past_hits INTEGER;
ALTER TABLE provisional_signals RENAME COLUMN hit_rate TO date_hit_rate;
ALTER TABLE provisional_signals ADD COLUMN past_signals INTEGER;
ALTER TABLE provisional_signals ADD COLUMN past_hits INTEGER;

-- Symbols of the universe that traded on both dates, and those of them that moved as the signal
-- claimed; NULL in the outcomes so far.
ALTER TABLE signal_outcomes ADD COLUMN universe_symbols INTEGER;
ALTER TABLE signal_outcomes ADD COLUMN universe_moved INTEGER;
ALTER TABLE provisional_outcomes ADD COLUMN universe_symbols INTEGER;
ALTER TABLE provisional_outcomes ADD COLUMN universe_moved INTEGER;
