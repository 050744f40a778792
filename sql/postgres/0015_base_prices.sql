-- A holding is also marked where the exchange adjusted its base price, with that price as a part of
-- the close before it.
ALTER TABLE holdings DROP CONSTRAINT holdings_mark_check;
ALTER TABLE holdings ADD CONSTRAINT holdings_mark_check CHECK (mark IN
    ('inverse_ratios', 'price_leap', 'shares_arrived', 'base_price', 'average_awaited'));
ALTER TABLE holdings ADD COLUMN marked_ratio text COLLATE "C";

-- Whether a close is certainly the official one, and the date's base price as a part of the close
-- before it, where the exchange adjusted it.
ALTER TABLE closes ADD COLUMN official boolean NOT NULL DEFAULT FALSE;
ALTER TABLE closes ADD COLUMN base_ratio text COLLATE "C";

-- The exchange's base price of a suspected date, in ten-thousandths of a rupee, where it is known.
ALTER TABLE split_suspicions ADD COLUMN base_e4 bigint;
