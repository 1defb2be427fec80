// Elements and data of the page. Text always goes in as text: what a recording says is never
// markup.

/**
 * Makes an element.
 * @param {string} name its tag, with a class after a dot: `div.finding`
 * @param {Record<string, string | number | boolean | ((event: any) => void) | null | undefined>}
 * attributes functions listen to the event of that name; null, undefined and false are left out
 * @param {...(Node | string | number | null | undefined)} children
 */
export function element(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  fill(made, attributes, children);
  if (tag === "table") nameCells(made);
  return made;
}

/** What a person does to choose: a finger cannot point. @returns {string} */
export const choosing = () =>
  matchMedia("(hover: none)").matches ? "Press" : "Point at, or tab to,";

/**
 * Gives each cell the name of its column, if the first row has names: on a narrow screen each row
 * is a card.
 * @param {HTMLElement} table
 */
function nameCells(table) {
  const [head, ...rows] = table.querySelectorAll("tr");
  if (!head || head.querySelector("td, [scope=row]")) return;
  const names = [...head.children].map(cell => cell.textContent ?? "");
  table.classList.add("cards");
  head.classList.add("card-names");
  for (const row of rows)
    [...row.children].forEach((cell, at) => cell.setAttribute("data-name", names[at] ?? ""));
}

/**
 * Makes an element of a drawing.
 * @param {string} tag @param {Record<string, any>} attributes
 * @param {...(Node | string | number | null | undefined)} children
 */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(made, attributes, children);
  return made;
}

/**
 * @param {Element} made @param {Record<string, any>} attributes
 * @param {(Node | string | number | null | undefined)[]} children
 */
function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(key, String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined)
      made.append(child instanceof Node ? child : String(child));
  }
}

/**
 * The JSON in the page's element of this id; null if absent.
 * @param {string} id @returns {any}
 */
export function jsonOf(id) {
  const text = document.getElementById(id)?.textContent;
  return text ? JSON.parse(text) : null;
}

/**
 * The bytes in the page's element of this id, uncompressed.
 * @param {string} id @returns {Promise<Uint8Array>}
 */
export async function bytesOf(id) {
  const text = document.getElementById(id)?.textContent ?? "",
    { fromBase64 } = /** @type {any} */ (Uint8Array);
  // An older browser lacks the new way, and takes several times as long.
  const packed = fromBase64
    ? fromBase64.call(Uint8Array, text)
    : Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  // All at once: a Blob's stream comes in small pieces, which takes twice as long.
  const { readable, writable } = new DecompressionStream("deflate"),
    writer = writable.getWriter();
  void writer.write(packed);
  void writer.close();
  return new Uint8Array(await new Response(readable).arrayBuffer());
}
