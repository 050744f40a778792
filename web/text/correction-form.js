export const correctionForm = {
  title: 'Apply a correction',
  why: 'The ledger counts with it from then on. It can be taken back on the page Integrity.',
  apply: 'Apply',
  leave: 'Cancel',
  /** @param {string} label */
  ifAny: (label) => `${label} (if any)`,
  required: 'Only you know this; it is needed.',
  notNumber: 'This is not a number.',
  /** @type {{ [member: string]: string }} */
  hints: {
    cost: 'What all of these shares cost, in rupees',
    date: 'The day of the purchase or the event',
    ex_date: 'The first day on which the price was without it',
    to: 'Empty if they left all of your accounts here',
    price: 'Of one share, in rupees',
  },
};
