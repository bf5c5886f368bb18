//! The stylesheet of people's pages keeps to docs/style.md: colors, sizes of type and spaces are named once, in `:root`.

/// Each declaration as a pair, of all that is not a comment, a palette or a typeface.
fn declarations(css: &str) -> Vec<(&str, &str)> {
    let pieces = css.split(['{', '}', ';']).map(|piece| piece.rsplit("*/").next().unwrap_or_default());
    pieces.filter_map(|piece| piece.trim().split_once(": ")).filter(|(name, _)| !name.starts_with("--")).collect()
}

/// What a declaration says in its own figures instead of by a name.
fn unnamed<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    // The leading of a line stands behind the size.
    let value = if name == "font" { value.split('/').next().unwrap_or_default() } else { value };
    let parts = value.split([' ', '(', ')', ',']).filter(|part| !part.is_empty());
    let is_length = |part: &&str| {
        let number = part.trim_end_matches("rem").trim_end_matches("px").trim_start_matches('-');
        number.len() < part.trim_start_matches('-').len()
            && number.parse::<f64>().is_ok_and(|length| length > 2.0 || part.ends_with("rem"))
    };
    let is_color = |part: &&str| part.starts_with('#') || matches!(*part, "rgb" | "hsl" | "white" | "black");
    let is_sized = ["font", "font-size", "margin", "padding", "gap", "column-gap"].contains(&name)
        || name.starts_with("margin-")
        || name.starts_with("padding-");
    parts.filter(|part| is_color(part) || (is_sized && is_length(part))).collect()
}

#[test]
fn the_stylesheet_names_its_colors_sizes_and_spaces_once() {
    let css = include_str!("../../../templates/style.css");
    let found = declarations(css);
    assert!(found.len() > 300, "{}", found.len());
    for (name, value) in &found {
        assert!(
            unnamed(name, value).is_empty(),
            "`{name}: {value}` has its own {:?}: see docs/style.md",
            unnamed(name, value)
        );
    }
    assert_eq!(unnamed("margin", "0 auto 1.5rem -8px"), ["1.5rem", "-8px"]);
    assert_eq!(unnamed("font", "700 1.2rem/2.2rem var(--slab)"), ["1.2rem"]);
    assert_eq!(unnamed("border", "2px solid #fff"), ["#fff"]);
    assert!(unnamed("margin", "0 auto var(--s4) 2px").is_empty() && unnamed("width", "18rem").is_empty());
}

#[test]
fn the_style_page_lists_every_name() {
    let (css, page) = (include_str!("../../../templates/style.css"), include_str!("../../../docs/style.md"));
    let root = css.split(":root {").nth(1).unwrap().split('}').next().unwrap();
    let names: Vec<_> = root
        .split([';', ' ', '\n'])
        .filter(|part| part.starts_with("--"))
        .map(|part| part.trim_end_matches(':'))
        .collect();
    assert!(names.len() > 35, "{}", names.len());
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/style.md does not say what `{name}` is for");
    }
}
