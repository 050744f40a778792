import { plural } from '../text.js';

export const trend = {
  title: 'Trend',
  caption: 'The trend, a point a day',
  views: { pnl: 'P&L', value: 'Value' },
  view: 'P&L or value',
  ranges: ['1W', '1M', '3M', 'YTD', '1Y'],
  range: 'Range',
  date: 'Date',
  invested: 'Invested',
  value: 'Value',
  pnl: 'P&L',
  how: 'How',
  sync: 'sync',
  close: 'close',
  about: 'What is in it',
  what: 'P&L is the unrealised profit of what is held on the day: shares that were sold are in it no more. The line breaks where the brokers or the number of holdings changed.',
  of: 'Of',
  /** @param {string} brokers @param {number | null} n */
  madeOf: (brokers, n) => `${brokers ? `${brokers}, ` : ''}${plural(n, 'holding', 'holdings')}`,
  notKept: 'An older version of the service did not keep this',
  /** @param {number} n */
  discrepancies: (n) => `${n} with a doubtful cost`,
  discrepancyWhy: 'The broker itself calls the average unreliable; the value is right',
  /** @param {number} n */
  leftOut: (n) => `${n} left out`,
  /** @param {number} n */
  carried: (n) => `${n} at an older price`,
  suspect: 'in doubt',
  suspectWhy: 'A split or the like may have changed quantity and price, and not both are here yet',
  /** @param {string} to */
  weekTo: (to) => `P&L in the week to ${to}: `,
  /** @param {string} from */
  since: (from) => ` since ${from}.`,
  noWeek: 'What changed in a week shows here once two points are a week apart.',
  notAllGain: 'not all gain',
  notAllGainWhy:
    'Shares were bought or sold, or a broker came in between: what was gained on shares that are sold is in it no more',
  legend: {
    pnl: [['value', 'P&L']],
    index: [
      [
        'index',
        'NIFTY 50',
        'The first day’s value, as if it had moved like the NIFTY 50 since, without dividends. It begins anew where brokers or holdings changed. What else you added or took out is in your line alone.',
      ],
    ],
    broken: [['broken', 'brokers or holdings changed']],
    value: [
      ['value', 'Value'],
      ['cost', 'Invested'],
    ],
    both: [
      ['sync', '● of a sync'],
      ['close', '· of a close'],
      ['hollow', '○ a holding left out, at an older price, or of doubtful cost'],
      ['suspect', '▮ in doubt: a split or the like'],
    ],
  },
  asTable: 'Show as table',
  estimate: 'Estimate earlier days',
  notRead: 'The closes of your shares could not be read. Try again.',
  keys: 'Trend: the arrow keys move from day to day',
  none: 'No points yet. The first comes with a sync, the next with each trading day’s close.',
  toPortfolio: 'To the portfolio',
  /** @param {string} v @param {string} d */
  one: (v, d) => `${v} on ${d}, the first day that is known.`,
  /** @param {string} since @param {string} own @param {string} index */
  besideIndex: (since, own, index) => `Since ${since}: you ${own}, NIFTY 50 ${index}.`,
  /** @param {string[]} w */
  pnlFrom: (...w) => `P&L was ${w[0]} on ${w[1]} and is ${w[2]} on ${w[3]}.`,
  /** @param {string[]} w */
  valueFrom: (...w) => `From ${w[0]} on ${w[1]} to ${w[2]} on ${w[3]}; lowest ${w[4]} on ${w[5]}.`,
  /** @param {string[]} w */
  readout: (...w) => [w[0], `Value ${w[1]}`, `Invested ${w[2]}`, `P&L ${w[3]}`],
};
