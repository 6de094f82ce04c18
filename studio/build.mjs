// Bundles the page into regarde/studio/static: one HTML, one CSS, one JS, the licenses of what is in them, and the
// SHA-256 of the sources they were made from, by which a test knows whether they are up to date.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = join(here, "..", "regarde", "studio", "static");
const inside = ["preact", "@preact/signals", "@preact/signals-core"]; // packages whose code is in the bundle

/** Every file that the bundle depends on, by its path from here, in one order on every machine. */
function sources() {
  const found = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath ?? entry.path, entry.name)).replaceAll("\\", "/"));
  return [...found, "index.html", "package.json", "package-lock.json", "build.mjs"].sort();
}

function fingerprint() {
  const hash = createHash("sha256");
  for (const name of sources()) hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
  return hash.digest("hex");
}

function licenses() {
  return inside
    .map((name) => {
      const folder = join(here, "node_modules", name);
      const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      return `${name} ${version} (${license})\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

mkdirSync(out, { recursive: true });
await esbuild.build({
  entryPoints: { studio: join(here, "src", "main.tsx") },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome123", "firefox120", "safari17.5"], // those that know light-dark()
  charset: "utf8",
  legalComments: "none",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "info",
});
copyFileSync(join(here, "index.html"), join(out, "index.html"));
writeFileSync(join(out, "licenses.txt"), licenses());
writeFileSync(join(out, "built.json"), `${JSON.stringify({ sources: fingerprint() })}\n`);
