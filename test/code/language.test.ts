import { describe, expect, it } from "vitest";
import { languageOf } from "../../src/code/chunking/language.ts";

describe("the language of a file", () => {
  it.each([
    ["src/a.ts", "typescript"],
    ["src/a.d.mts", "typescript"],
    ["a.TSX", "tsx"],
    ["a.jsx", "javascript"],
    ["lib/x.py", "python"],
    ["Dockerfile", "dockerfile"],
    ["deploy/Dockerfile.prod", "dockerfile"],
    ["Gemfile", "ruby"],
    ["Makefile", "makefile"],
    [".bashrc", "bash"],
    ["README.md", "markdown"],
    ["a.b/c", "text"],
    ["LICENSE", "text"],
    ["strange.unknown", "text"],
    ["", "text"],
    [".", "text"],
  ])("of %s by its name is %s", (path, language) => {
    expect(languageOf(path)).toBe(language);
  });

  it.each([
    ["#!/bin/sh\n", "bash"],
    ["#!/usr/bin/env -S python3.11 -u\n", "python"],
    ["#! /usr/bin/node --no-warnings", "javascript"],
    ["#!/usr/bin/env ruby", "ruby"],
    ["<?php echo 1;", "php"],
    ["#!/opt/unknown/thing", "text"],
    ["no shebang", "text"],
  ])("without an extension comes from the first line %j: %s", (content, language) => {
    expect(languageOf("bin/tool", content)).toBe(language);
  });

  it("trusts the extension more than the first line", () => {
    expect(languageOf("a.ts", "#!/usr/bin/env node\n")).toBe("typescript");
  });

  it.each([
    ["#ifndef A_H\nint add(int a, int b);\n#endif", "c"],
    ["#pragma once\nnamespace a {\n}", "cpp"],
    ["template <typename T>\nT max(T a, T b);", "cpp"],
    ["std::string name();", "cpp"],
    ["/* a class of its own */\nstruct s { int x; };", "c"],
  ])("distinguishes C from C++ headers by what they use (%j)", (content, language) => {
    expect(languageOf("include/a.h", content)).toBe(language);
  });
});
