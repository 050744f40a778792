export const find = {
  title: 'Find a share or an index',
  placeholder: 'Ticker, name or ISIN',
  keys: 'Keys',
  close: 'Close',
  keyList: [
    ['/', 'Find a share or an index'],
    ['?', 'This list'],
    ['← →', 'Move from day to day in a chart'],
    ['Home End', 'First and last day of a chart'],
    ['Esc', 'Close what is open'],
  ],
};
