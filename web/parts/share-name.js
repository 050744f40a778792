// A share as the ledger's pages name it: by its file's symbol, which leads to its page, with its company.
import { called } from '../data/format.js';
import { learnSymbols, nameOf, symbolOfIsin } from '../data/names.js';
import { ledger } from '../text/ledger.js';
import { pathOf } from './view.js';

/** @typedef {{ symbol: string | null, isin: string | null }} Named */

/** Asks for the shares of these rows, so that what draws them has their names. @param {Named[]} rows */
export const learnShares = (rows) => learnSymbols(rows.flatMap(({ isin }) => isin ?? []));

/** Its page, where a list of instruments has it. @param {Named} row */
export function pathOfShare({ isin }) {
  const listed = symbolOfIsin(isin);
  return listed ? pathOf(listed) : undefined;
}

/** @param {Named} row */
export const companyOf = ({ isin }) => nameOf(symbolOfIsin(isin) ?? '');

/** Broker B's files have its own codes: here a share has one name, whichever file it is of. @param {Named} row */
export const shareName = ({ symbol, isin }) => called(symbolOfIsin(isin) ?? symbol ?? isin ?? ledger.noSymbol);

/** @param {Named} row @returns {Bit[]} */
export function shareBits(row) {
  const company = companyOf(row);
  return [
    { text: row.symbol ?? row.isin ?? ledger.noSymbol, kind: 'symbol', href: pathOfShare(row) },
    ...(company ? [' ', { text: company, kind: 'company' }] : []),
  ];
}
