-- Signals of unfinished candles, and what became of them: they are not made any more.
DROP TABLE provisional_outcomes;
DROP TABLE provisional_signals;
