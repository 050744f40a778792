export const noTrades = {
  title: 'No trades yet',
  titleSynced: 'Only what the syncs brought',
  why: 'Today’s positions are known, their history is not. The brokers’ own files have it:',
  brokers: [
    {
      name: 'Zerodha (broker A)',
      steps: [
        'Console, Reports, Tradebook: segment Equity, all dates that it offers, CSV or XLSX.',
        'Console, Reports, Tax P&L: a year each, as it comes. It is compared with the trades, and has charges.',
      ],
    },
    {
      name: 'ICICI Direct (broker B)',
      steps: [
        'Portfolio, Equity, Transactions or All transactions: CSV. Or the trade book of each year.',
        'Reports, Capital gains: the .xls of a year, as it comes.',
      ],
    },
  ],
  then: 'Drop them above in any order, and again whenever you like: what is known is not counted twice.',
  demo: 'In this demo the simulated brokers have such files:',
};
