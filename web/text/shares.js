export const shares = {
  caption: 'All shares',
  share: 'Share',
  sector: 'Sector',
  noSector: 'The list of sectors does not have this company',
  last: 'Last',
  change: 'Change',
  changePct: 'Today',
  chart: 'Chart of the index →',
  /** @param {string} name */
  chartOf: (name) => `${name}: chart of the index`,
  /** @param {string[]} industries @param {number} all */
  of: (industries, all) => `Of the ${all} shares, those in ${joined(industries)}. The index may hold others.`,
  /** @param {number} all */
  none: (all) => `None of the ${all} shares that are followed is in this sector.`,
  notKnown: 'Which shares belong to this index is not known here.',
};

/** @param {string[]} words */
const joined = (words) =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
