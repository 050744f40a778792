// What the page of gains makes of a year: what is left out by its reason, what is compared. Pure; no money is computed.

/** @typedef {Answer<'/api/trades/gains'>} Gains */
/** @typedef {Gains['left_out'][number]} LeftOut */
/** @typedef {Answer<'/api/trades/agreement'>['lines'][number]} Line */

/** @param {{ isin?: string | null, symbol?: string | null }} of */
const shareOf = (of) => of.isin ?? of.symbol ?? '';

/**
 * What is left out, a group for each reason, that of most shares first.
 * @param {LeftOut[]} rows
 */
export function byReason(rows) {
  /** @type {Map<string, LeftOut[]>} */
  const groups = new Map();
  for (const row of rows) groups.set(row.reason, [...(groups.get(row.reason) ?? []), row]);
  const counted = [...groups].map(([reason, list]) => ({ reason, rows: list, shares: new Set(list.map(shareOf)).size }));
  return counted.sort((a, b) => b.shares - a.shares);
}

/** How many shares are left out, whatever the reasons. @param {LeftOut[]} rows */
export const sharesOf = (rows) => new Set(rows.map(shareOf)).size;

/** The year that is shown at first: the last with anything in it, else the current one. @param {{ fy: string, years: string[] }} answer */
export const firstYear = ({ fy, years }) => (years.includes(fy) ? fy : (years.at(-1) ?? fy));

/** The years to choose from, newest first. @param {{ fy: string, years: string[] }} answer @param {string} current */
export const yearsOf = ({ years }, current) => [...new Set([...years, current])].sort().reverse();

/** Lines that do not agree, and those that do. @param {Line[]} lines */
export const compared = (lines) => ({
  open: lines.filter(({ status }) => status !== 'agreed'),
  agreed: lines.filter(({ status }) => status === 'agreed'),
});

/**
 * The account whose report is compared, if only one of several has one: what the others sold is in the ledger alone
 * and says nothing.
 * @param {Line[]} lines
 */
export function reportedAccount(lines) {
  const all = new Set(lines.map(({ account }) => account));
  const reported = new Set(lines.filter(({ report }) => report).map(({ account }) => account));
  const [only] = reported;
  return reported.size === 1 && all.size > 1 ? only : null;
}

/** Whether a report of the year was imported: else all lines are of the ledger alone. @param {{ agreed: number, differs: number, only_report: number }} head */
export const hasReport = ({ agreed, differs, only_report: only }) => agreed + differs + only > 0;
