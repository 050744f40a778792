// W18: a page of an older version offers to load the new one, and never mixes the two.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, scene, visit } from './support.js';

const stage = scene();

test('an old page offers to reload', async () => {
  const { page, context } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/`);
  assert.equal(await page.locator('#update').isVisible(), false);
  await page.route('**/api/auth/session', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), web: '0123456789ab' } });
  });
  // The event of a return to the tab.
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await page.getByText('A new version of the service is running.').waitFor();
  await page.getByRole('button', { name: 'Reload' }).waitFor();
  await context.close();
});

test('a module of another version is not there', async () => {
  const page = await (await fetch(stage.demo.base)).text();
  const path = /\/assets\/[0-9a-f]{12}\/app\.js/.exec(page)[0];
  assert.equal((await fetch(stage.demo.base + path)).status, 200);
  assert.equal((await fetch(stage.demo.base + path.replace(/[0-9a-f]{12}/, '0123456789ab'))).status, 404);
});
