-- A holding is also marked where the exchange adjusted its base price, with that price as a part of
-- the close before it. The word list of a column cannot be changed, so the column is made anew.
ALTER TABLE holdings ADD COLUMN sign TEXT CHECK (sign IN
    ('inverse_ratios', 'price_leap', 'shares_arrived', 'base_price', 'average_awaited'));
UPDATE holdings SET sign = mark WHERE mark IS NOT NULL;
ALTER TABLE holdings DROP COLUMN mark;
ALTER TABLE holdings RENAME COLUMN sign TO mark;
ALTER TABLE holdings ADD COLUMN marked_ratio TEXT;

-- Whether a close is certainly the official one, and the date's base price as a part of the close
-- before it, where the exchange adjusted it.
ALTER TABLE closes ADD COLUMN official INTEGER NOT NULL DEFAULT 0;
ALTER TABLE closes ADD COLUMN base_ratio TEXT;

-- The exchange's base price of a suspected date, in ten-thousandths of a rupee, where it is known.
ALTER TABLE split_suspicions ADD COLUMN base_e4 INTEGER;
