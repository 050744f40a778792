// W18: a page of the program before offers to load the new one, and never mixes the two.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, startDemo, visit } from './support.js';

let demo;
let browser;

before(async () => {
  demo = await startDemo();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await demo?.stop();
});

test('an old page offers to reload', async () => {
  const { page, context } = await open(browser);
  await visit(page, `${demo.base}/`);
  assert.equal(await page.locator('#update').isVisible(), false);
  await page.route('**/api/auth/session', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), web: '0123456789ab' } });
  });
  // What a return to the tab does.
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await page.getByText('A new version of the service is running.').waitFor();
  await page.getByRole('button', { name: 'Reload' }).waitFor();
  await context.close();
});

test('a module of another version is not there', async () => {
  const page = await (await fetch(demo.base)).text();
  const path = /\/assets\/[0-9a-f]{12}\/app\.js/.exec(page)[0];
  assert.equal((await fetch(demo.base + path)).status, 200);
  assert.equal((await fetch(demo.base + path.replace(/[0-9a-f]{12}/, '0123456789ab'))).status, 404);
});
