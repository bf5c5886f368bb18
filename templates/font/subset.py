#!/usr/bin/env python3
"""Makes heading.woff2 out of Zilla Slab Bold: see README.md. Called by subset.sh.

    subset.py ZillaSlab_700Bold.ttf FOLDER
"""

import hashlib
import sys
from pathlib import Path

from fontTools import subset

# What the subset was designed against: another file may have other names for its glyphs.
ORIGINAL = "ec5a3ec1bccca134e1cf0de2bdbd8f88b35c0756ad3997460a55f6da6c07bbf4"

FAMILY = "Unionhall Heading"

LATIN = [*range(0x20, 0x7F), *range(0xA0, 0x100)]
LATIN_EXTENDED_A = list(range(0x100, 0x180))
PUNCTUATION = [ord(char) for char in "‘’‚“”„–—•…‹›€←→"]


def with_lining_figures(font):
    """The original's figures are old-style, which looks like a mistake in a price: let the lining ones be the default."""
    lining = {}
    gsub = font["GSUB"].table
    for record in gsub.FeatureList.FeatureRecord:
        if record.FeatureTag == "lnum":
            for index in record.Feature.LookupListIndex:
                for table in gsub.LookupList.Lookup[index].SubTable:
                    lining.update({k: v for k, v in table.mapping.items() if v == f"{k}.pnum_lnum"})
    for table in font["cmap"].tables:
        table.cmap = {code: lining.get(name, name) for code, name in table.cmap.items()}


def renamed(font):
    """Keeps who made it and on which terms; the family's name is our own."""
    version = font["name"].getDebugName(5)
    names = font["name"]
    kept = (0, 7, 8, 11, 13, 14)
    names.names = [record for record in names.names if record.platformID == 3 and record.nameID in kept]
    for name_id, text in [
        (1, FAMILY),
        (2, "Bold"),
        (3, f"{FAMILY} Bold, from Zilla Slab Bold {version}"),
        (4, f"{FAMILY} Bold"),
        (5, version.split(";")[0]),
        (6, FAMILY.replace(" ", "") + "-Bold"),
        (10, "A subset of Zilla Slab Bold with lining figures."),
    ]:
        names.setName(text, name_id, 3, 1, 0x409)


def subsetted(path, codes, features):
    options = subset.Options()
    options.hinting = False
    options.layout_features = features
    options.name_IDs = ["*"]
    options.notdef_outline = True
    options.glyph_names = False
    options.recalc_timestamp = False
    font = subset.load_font(path, options, dontLoadGlyphNames=False)
    with_lining_figures(font)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    renamed(font)
    return font


def main(original, folder):
    digest = hashlib.sha256(Path(original).read_bytes()).hexdigest()
    if digest != ORIGINAL:
        sys.exit(f"{original} is not the file that this was made for: its SHA-256 is {digest}")
    codes = LATIN + LATIN_EXTENDED_A + PUNCTUATION
    web = subsetted(original, codes, ["kern", "liga", "tnum", "pnum"])
    web.flavor = "woff2"
    web.save(Path(folder) / "heading.woff2")


if __name__ == "__main__":
    main(*sys.argv[1:])
