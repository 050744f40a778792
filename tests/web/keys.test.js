// An API key is made, shown once, used, listed and revoked on the account page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PASSWORD, open, register, scene, until, visit } from './support.js';

const stage = scene();

test('a key is shown once, works, and is revoked', async () => {
  const { page, context, faults } = await open(stage.browser);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: stage.demo.base });
  await register(page, stage.demo.base);
  await visit(page, `${stage.demo.base}/account`);
  await page.getByText('There is no key.').waitFor();
  await page.getByText('Make a key…').click();
  // Without a scope nothing is made, and the form says where.
  await page.getByLabel('Name', { exact: true }).fill('kitchen display');
  await page.getByLabel('Your password, once more').fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the key' }).click();
  await page.getByText('At least one of them.').waitFor();
  await page.getByLabel('read the portfolio').check();
  await page.getByLabel('It ends').selectOption('30');
  await page.getByLabel('Your password, once more').fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the key' }).click();
  const field = page.getByLabel('The new key');
  const key = await field.inputValue();
  assert.match(key, /^bhav_[0-9A-Za-z]{11}_[0-9A-Za-z]{49}$/);
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await page.getByText('Copied.').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  const status = async (path) => (await fetch(`${stage.demo.base}${path}`, { headers: { Authorization: `Bearer ${key}` } })).status;
  assert.deepEqual([await status('/api/portfolio/holdings'), await status('/api/journal')], [200, 403]);
  // An assistant's line has this site's address, and no key.
  await page.getByText('For an assistant…').click();
  const line = await page.getByLabel('For Claude Code, which takes the key from the environment as KEY').inputValue();
  assert.equal(line, `claude mcp add --transport http bhav ${stage.demo.base}/mcp --header 'Authorization: Bearer \${KEY}'`);
  await page.locator('details', { hasText: 'For an assistant' }).getByRole('button', { name: 'Copy' }).click();
  await until('the copy', async () => (await page.evaluate(() => navigator.clipboard.readText())) === line);
  // It is not there any more on the next visit; its last use is.
  await page.getByRole('button', { name: 'Done' }).click();
  assert.equal(await field.count(), 0);
  await page.reload();
  await page.getByText(/kitchen display/).waitFor();
  await page.getByText(/last used .* from 127\.0\.0\.0\/24/).waitFor();
  assert.ok(!(await page.content()).includes(key.slice(17)));
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('button', { name: 'Yes, revoke' }).click();
  await page.getByText('There is no key.').waitFor();
  await until('the refusal', async () => (await status('/api/portfolio/holdings')) === 401);
  // The browser notes the refused form by itself.
  assert.deepEqual(faults.filter((one) => !one.includes('status of 400')), []);
  await context.close();
});
