// The page of one or two recordings: reads the data, puts the parts together.
import { element, jsonOf } from "./dom.js";

const view = jsonOf("view");
document.body.append(element("h1", {}, view.name));
