-- Of an import of broker B's syncs: the first days of the past quarters that were read to their end,
-- so that each is asked for once. They go with the import, and are asked for again then.
ALTER TABLE ledger_imports ADD COLUMN quarters TEXT;
