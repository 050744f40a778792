// Whether a page is accessible, by axe: nothing violated, and nothing undecided but what is known to be fine.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['best-practice', 'wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** What axe could not decide, and why that is fine. */
const UNDECIDED = new Map([
  // Single signs such as ↑, text of a chart, and what a focus ring or a number in a circle is near:
  // all of them have the colours of the palette, whose contrast stands in the style sheet's tokens.
  ['color-contrast', (node) => ['nonBmp', 'imgNode', 'shortTextContent', 'pseudoContent', 'bgOverlap'].includes(node.any[0]?.data?.messageKey)],
  // A button that shows a sign has its words in its label: there is no text to repeat.
  ['label-content-name-mismatch', (node) => !/\p{L}/u.test(node.html.replace(/<[^>]*>/g, ''))],
]);

export async function check(page, name) {
  await page.evaluate(AXE);
  // A price that flashes while the scheme changes keeps the colour of the other one until it ends.
  await page.evaluate(() => Promise.all(document.getAnimations()
    .filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity)
    .map(({ finished }) => finished.catch(() => {}))));
  const { violations, incomplete } = await page.evaluate((rules) => window.axe.run({ runOnly: rules }), RULES);
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
  assert.deepEqual(told, [], name);
  const open_ = incomplete.flatMap(({ id, nodes }) => nodes.filter((node) => !UNDECIDED.get(id)?.(node)).map(({ html }) => `${id}: ${html.slice(0, 160)}`));
  assert.deepEqual(open_, [], `${name}, undecided`);
}
