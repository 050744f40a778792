// Why something is not proved, and what made ledger and broker differ: a sentence for each code of the service.

/** Short, and what it means. @type {{ [code: string]: [string, string] }} */
export const reasons = {
  never_synced: [
    'Account never synced',
    'No broker has said what this account holds, so nothing of it can be proved. Sync it, or read its gains as they stand.',
  ],
  quantity_differs: [
    'Quantity differs',
    'The broker holds another quantity than the trades add up to: something is missing from the files or was never a trade.',
  ],
  uncovered: [
    'Sold without a purchase',
    'More was sold than the files show as bought. The purchase is in an older file, or the shares came without a trade.',
  ],
  conflict: ['Two rows disagree', 'Two files give one trade different figures. Neither counts until you choose.'],
  isin_unknown: ['Share not identified', 'The file gives a code and no ISIN, and nothing else tells which share it is.'],
  action_unproved: [
    'Event that is not computed',
    'A delisting, a merger with cash or the like happened to this share. Its cost afterwards is not computed.',
  ],
  bonus_stripping: [
    'Loss beside a bonus',
    'Shares bought shortly before a bonus were sold at a loss while the bonus shares are held. The law ignores that loss (section 94(8)).',
  ],
  not_yet_synced: ['Later than the sync', 'The sale is newer than the last sync, or the broker may not show it yet. Sync again.'],
  fmv_missing: [
    'Price of 31 Jan 2018 missing',
    'Bought before February 2018: the cost for tax needs the highest price of 31 January 2018.',
  ],
  fmv_carried: [
    'Price of 31 Jan 2018 unclear',
    'The shares came by a merger, a demerger or as a gift, and it is open which price of 31 January 2018 holds.',
  ],
  fmv_differs: ['Two prices of 31 Jan 2018', 'Two corrections name different prices of 31 January 2018 for this share.'],
  stt_on_sale: ['No STT on the sale', 'The file says that no securities transaction tax was paid on the sale: other rates hold.'],
  stt_on_purchase: [
    'No STT on the purchase',
    'The shares were bought off the market or on paper, so the long-term rate may not hold.',
  ],
  rule_unknown: ['No rule of that date', 'No rate or section of the date of this sale is known here.'],
  fno_expired: ['Contract without an end', 'The contract has expired and no file shows how it was closed.'],
  stated: ['Only in the broker’s report', 'The broker’s tax report has this sale, and no trade of the ledger does.'],
  class_fund: [
    'Fund',
    'Exchange-traded funds of equity, gold and debt look alike here and have different rates. Say what it is.',
  ],
  class_bond: ['Bond', 'Gains of bonds have rules of their own, which are not computed.'],
  class_trust: ['Trust (REIT, InvIT)', 'Gains of REITs and InvITs have rules of their own, which are not computed.'],
  class_entitlement: ['Rights entitlement', 'Gains of rights entitlements are not computed.'],
  class_government: ['Government security', 'Gains of government securities are not computed.'],
  class_other: ['Other security', 'The ISIN is of no share that is known here, so its rules are not either.'],
  different_rights: ['Partly paid or other rights', 'Partly paid shares, or shares with other voting rights. Say whether it is ordinary equity.'],
};

/** @type {{ [code: string]: string }} */
export const causes = {
  bonus: 'Probably a bonus issue: the broker holds exactly what a usual bonus would give.',
  split: 'Probably a split, or a new ISIN: the quantities stand in a usual ratio.',
  transfer_in: 'Probably shares that came without a trade: an allotment (IPO, ESOP), a gift, or a transfer from elsewhere.',
  older_file: 'Probably an older file is missing: the sale is there and the purchase is not.',
  transfer_out: 'Probably shares that left without a trade: a transfer to another account, a gift, or a buyback.',
  missing_file: 'Probably a file is missing: there is a long time without any trade.',
  conflict: 'Two rows of one trade disagree; choose which one holds.',
  symbol: 'The file’s code has no ISIN; say which share it is.',
};

/** What returns and worksheet leave out besides. @type {{ [code: string]: [string, string] }} */
export const otherReasons = {
  intraday: ['Trades of a day', 'What is bought and sold in a day is business income, and in no return.'],
  fno: ['Derivatives', 'Futures and options are in no return.'],
  dividends: ['Dividends', 'Dividends are in no return.'],
  shares_left: ['Shares came or left without a trade', 'Shares of it came or left without a trade, so a return would be wrong.'],
  no_price: ['No price', 'There is no price of today, so its value is not known.'],
};

/** Why there is no rate of return. @type {{ [code: string]: string }} */
export const noRate = {
  no_flows: 'Nothing that is proved was bought or sold.',
  one_date: 'All purchases and the value are of one day.',
  one_sign: 'Money only went in, or only came out.',
  several_roots: 'Several rates fit these purchases and sales, so none is shown.',
  no_root: 'No rate fits these purchases and sales.',
  cost_carried: 'What is held came from a merger or a demerger, or went into one.',
};

/** @param {string} code */
export const reasonOf = (code) => reasons[code] ?? otherReasons[code] ?? [code.replaceAll('_', ' '), ''];
