export const candles = {
  title: 'Candles',
  caption: (s) => `Daily candles of ${s}`,
  date: 'Date',
  open: 'Open',
  high: 'High',
  low: 'Low',
  close: 'Close',
  volume: 'Volume',
  range: 'Range',
  asTable: 'Show as table',
  keys: 'Candles: the arrow keys move from day to day',
  sentence: (...w) => `${w[0]}: ${w[1]} daily candles from ${w[2]} to ${w[3]}, last close ${w[4]}`,
  readout: (...w) => [w[0], `Open ${w[1]}`, `High ${w[2]}`, `Low ${w[3]}`],
  /** @param {string} p */
  readClose: (p) => `Close ${p}`,
  /** @param {string} p */
  readLast: (p) => `Last ${p}`,
  running: 'today so far',
  readVolume: (n) => `Volume ${n}`,
  untraded: 'An index is not traded itself',
  suspect: 'In doubt',
  suspectWhy: 'The prices look as if a split were not in them; they are fetched again',
  notStored:
    'No candles are kept of this symbol: they are of the indices, of the NIFTY 50’s shares and of what users hold, from the evening on.',
  notListed: 'No list of instruments has this symbol.',
  /** @param {string} side @param {string} n */
  own: (side, n) => `You ${side === 'buy' ? 'bought' : 'sold'} ${n}`,
};
