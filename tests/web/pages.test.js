// W3 to W5: every page, logged in and out: nothing refused, nothing foreign, accessible, and no
// wider than a phone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { PAGES, launch, open, register, startDemo, sync, visit } from './support.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
const SIZES = { phone: { width: 320, height: 720 }, desk: { width: 1280, height: 900 } };

let demo;
let browser;
let state;

before(async () => {
  demo = await startDemo();
  browser = await launch();
  const { page, context } = await open(browser);
  await register(page, demo.base);
  await sync(page, demo, 'a');
  await sync(page, demo, 'b');
  state = await context.storageState();
  await context.close();
});
after(async () => {
  await browser?.close();
  await demo?.stop();
});

/** What axe could not decide, and why that is fine. */
const UNDECIDED = new Map([
  // Single signs such as ↑, text of a chart, and what a focus ring or a number in a circle is near:
  // all of them have the colours of the palette, whose contrast stands in the style sheet's tokens.
  ['color-contrast', (node) => ['nonBmp', 'imgNode', 'shortTextContent', 'pseudoContent', 'bgOverlap'].includes(node.any[0]?.data?.messageKey)],
  // A button that shows a sign has its words in its label: there is no text to repeat.
  ['label-content-name-mismatch', (node) => !/\p{L}/u.test(node.html.replace(/<[^>]*>/g, ''))],
]);

async function check(page, name) {
  await page.evaluate(AXE);
  const { violations, incomplete } = await page.evaluate((rules) => window.axe.run({ runOnly: rules }), RULES);
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
  assert.deepEqual(told, [], name);
  const open_ = incomplete.flatMap(({ id, nodes }) => nodes.filter((node) => !UNDECIDED.get(id)?.(node)).map(({ html }) => `${id}: ${html.slice(0, 160)}`));
  assert.deepEqual(open_, [], `${name}, undecided`);
}

for (const who of ['guest', 'user']) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      test(`pages of a ${who}, ${size}, ${colorScheme}`, async () => {
        const { page, context, faults, hosts, violations } = await open(browser, {
          viewport, colorScheme, storageState: who === 'user' ? state : undefined,
        });
        for (const path of PAGES) {
          await visit(page, demo.base + path);
          await check(page, `${path} ${who} ${size} ${colorScheme}`);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          assert.ok(over <= 0, `${path} is ${over} px wider than the window`);
          assert.deepEqual(await violations(), [], path);
        }
        assert.deepEqual(faults, []);
        assert.deepEqual([...hosts], [demo.base]);
        await context.close();
      });
    }
  }
}

test('every page works at 400 % zoom', async () => {
  // 1280 px at 400 % is 320 px wide and short.
  const { page, context } = await open(browser, { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4, storageState: state });
  for (const path of PAGES) {
    await visit(page, demo.base + path);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `${path} is ${over} px wider than the window`);
  }
  await context.close();
});
