export const market = {
  title: 'Market',
  heading: 'The market now',
  sectors: 'Sectors',
  signals: 'Signals',
  allSignals: 'All signals and their record →',
  legend: ['≤ −1.5 %', '', '±0.3', '', '≥ 1.5 %'],
  noQuote: 'no recent quote',
  above: (n) =>
    `${n} ${n === 1 ? 'share has' : 'shares have'} a pattern after which it more often went the same way than without one; the three best:`,
  noneAbove: 'No pattern of this date makes a move likelier than it is on any day.',
};
