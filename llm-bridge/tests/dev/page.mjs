// The chat page under `toolrack dev`, in a real browser: a tool that is saved, made wrong and corrected. run.py starts the server.
//
//   TOOLRACK_URL   address of the server
//   TOOL           the file to write the tool to
//   CHROMIUM       the browser
//   SHOTS          folder for screenshots; none are taken without it

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const PATIENCE = 300_000;
const TEXT = `//! A tool that a test has written, and removes.

use registry_core::prelude::*;

/// Adds something to a number.
#[tool]
async fn dev_probe(
    /// The number.
    number: i64,
) -> i64 {
    number + 1
}
`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const complaints = [];

async function shot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), animations: 'disabled' });
}

function holds(condition, what) {
  if (!condition) throw new Error(what);
}

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE);
  page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(process.env.TOOLRACK_URL);
  await page.waitForSelector('#examples button');
  await page.click('#tools-toggle');
  await page.waitForSelector('.tool-name:text-is("calculate")');
  const tool = '.tool-name:text-is("dev_probe")';
  holds(await page.locator(tool).count() === 0, 'the tool is there before');

  let began = Date.now();
  writeFileSync(process.env.TOOL, TEXT);
  await page.waitForSelector('#build:has-text("is built")');
  const [ready, listed] = await Promise.all([
    page.waitForSelector('#build', { state: 'hidden' }).then(Date.now),
    page.waitForSelector(tool).then(Date.now),
  ]);
  console.log(`page: the new tool after ${((listed - began) / 1000).toFixed(1)} s`);
  holds(listed - ready < 1000, `the page lists the tool ${listed - ready} ms after it could be called`);
  await shot(page, 'dev-new-tool');

  writeFileSync(process.env.TOOL, TEXT.replace('number + 1', 'number + "<b>one</b>"'));
  await page.waitForSelector('#build.failed pre');
  const text = await page.innerText('#build pre');
  holds(text.includes('tools/dev_probe.rs:11') && text.includes('number + "<b>one</b>"'), `the message is not whole: ${text}`);
  holds(!text.includes('\u001b'), `sequences of a terminal are left: ${text}`);
  holds(await page.locator('#build pre .ansi-red').count() > 0, 'it has no colours');
  holds(await page.locator('#build pre b').count() === 0, 'a message makes elements');
  await shot(page, 'dev-error');
  await page.setViewportSize({ width: 360, height: 640 });
  holds(await page.evaluate(() => document.documentElement.scrollWidth) <= 360, 'the page is too wide');
  await shot(page, 'dev-error-phone');
  await page.setViewportSize({ width: 1280, height: 800 });

  rmSync(process.env.TOOL);
  await page.waitForSelector('#build', { state: 'hidden' });
  await page.waitForSelector(tool, { state: 'detached' });
  holds(complaints.length === 0, complaints.join('\n'));
  console.log('ok      the page shows new tools and compile errors');
} catch (error) {
  console.log(`FAILED  ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
