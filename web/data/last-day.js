// The states of the last day as health has them: a letter for each piece of it, the oldest first.

/** Pieces of a whole day: what is not there was before the start. */
export const PIECES = 288;

/** One state for a while. @typedef {{ state: string, at: number, length: number, from: string, to: string }} Run */

/**
 * The day in runs of one state. `at` and `length` are in pieces, as in a whole day; `from` and `to` are times.
 * @param {string} states
 * @param {{ piece_s: number, ends_ist: string }} day
 * @returns {Run[]}
 */
export function runsOf(states, { piece_s: pieceS, ends_ist: ends }) {
  const end = Date.parse(ends);
  const before = PIECES - states.length;
  const timeOf = (/** @type {number} */ piece) => new Date(end - (states.length - piece) * pieceS * 1000).toISOString();
  return [...states.matchAll(/(.)\1*/g)].map(({ 0: run, 1: state, index }) => ({
    state,
    at: before + index,
    length: run.length,
    from: timeOf(index),
    to: timeOf(index + run.length),
  }));
}

/** For how many seconds a part was in each state. @param {Run[]} runs @param {number} pieceS @returns {{ [state: string]: number }} */
export function secondsOf(runs, pieceS) {
  /** @type {{ [state: string]: number }} */
  const seconds = {};
  for (const { state, length } of runs) seconds[state] = (seconds[state] ?? 0) + length * pieceS;
  return seconds;
}

/** A sentence in parts, where a command stands in it: before it, itself, behind it. @param {string} words @param {string | undefined} command */
export function aroundCommand(words, command) {
  const at = command ? words.indexOf(command) : -1;
  if (!command || at < 0) return [words, '', ''];
  return [words.slice(0, at), command, words.slice(at + command.length)];
}
