// Opens a page in a browser, does what it is told, and prints what came of it as one line of JSON.
// One argument, JSON: `packages` (where playwright-core lies), `browser` (a program), `url`, `width`, `height`, `dark`, and
// `steps`, each a word with its objects:
//   ["click", selector]   ["press", key]   ["wait", expression]   ["tell", expression]   ["drag", selector, from, to] in shares of its width
//   ["until", key, expression, most] presses the key so often   ["type", text]   ["heap"] bytes in use after a collection   ["shot", file]   ["touch", file]
//   ["open", url] another page   ["size", width, height]   ["visible"] the text that is whole on the screen, without scrolling
// Printed: `told` (one value for each tell, heap and visible), `complaints` (errors of the console), `requests` (addresses).
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";

const order = JSON.parse(process.argv[2]);
const { chromium } = createRequire(`${order.packages}/`)("playwright-core");
const arguments_ = ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"];
const browser = await chromium.launch({
  executablePath: order.browser,
  args: arguments_,
  timeout: 180_000,
});
const told = [],
  complaints = [],
  requests = [];
try {
  const colorScheme = order.dark ? "dark" : "light";
  const context = await browser.newContext({
    colorScheme,
    viewport: { width: order.width, height: order.height },
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("console", message => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", error => complaints.push(String(error)));
  page.on("request", request => requests.push(request.url()));
  await page.goto(order.url);
  const does = {
    click: selector => page.locator(selector).first().click(),
    press: key => page.keyboard.press(key),
    until: async (key, expression, most) => {
      for (let pressed = 0; !(await page.evaluate(expression)); pressed++) {
        if (pressed === most)
          throw new Error(`${key} pressed ${most} times, and not yet ${expression}`);
        await page.keyboard.press(key);
      }
    },
    type: text => page.keyboard.type(text),
    // Not waitForFunction: it evaluates in the page, whose policy forbids that.
    wait: async expression => {
      for (const since = Date.now(); !(await page.evaluate(expression));) {
        if (Date.now() - since > 60_000) throw new Error(`a minute, and not yet ${expression}`);
        await new Promise(done => setTimeout(done, 50));
      }
    },
    tell: async expression => told.push(await page.evaluate(expression)),
    touch: path => writeFile(path, ""),
    open: url => page.goto(url),
    size: (width, height) => page.setViewportSize({ width, height }),
    visible: async () =>
      told.push(
        await page.evaluate(() => {
          const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT),
            seen = [],
            range = document.createRange();
          while (texts.nextNode()) {
            range.selectNode(texts.currentNode);
            const rects = texts.currentNode.parentElement.checkVisibility()
              ? [...range.getClientRects()]
              : [];
            if (
              rects.length &&
              rects.every(
                ({ top, bottom, left, right }) =>
                  top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth,
              )
            )
              seen.push(texts.currentNode.data);
          }
          return seen.join(" ");
        }),
      ),
    shot: path => page.screenshot({ path }),
    drag: async (selector, from, to) => {
      const target = page.locator(selector).first();
      await target.scrollIntoViewIfNeeded();
      const { x, y, width, height } = await target.boundingBox();
      await page.mouse.move(x + width * from, y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x + width * to, y + height / 2, { steps: 5 });
      await page.mouse.up();
    },
    heap: async () => {
      const session = await context.newCDPSession(page);
      await session.send("HeapProfiler.collectGarbage");
      const { usedSize, embedderHeapUsedSize, backingStorageSize } =
        await session.send("Runtime.getHeapUsage");
      told.push(usedSize + embedderHeapUsedSize + backingStorageSize);
    },
  };
  for (const [word, ...objects] of order.steps) await does[word](...objects);
} catch (error) {
  complaints.push(String(error));
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify({ told, complaints, requests }) + "\n");
