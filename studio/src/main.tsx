// Where the page begins.
import { render } from "preact";
import { start } from "./session";
import { Shell } from "./shell";
import "./style/page.css";

void start();
render(<Shell />, document.getElementById("page")!);
