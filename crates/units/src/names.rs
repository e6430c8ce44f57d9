//! Names that somebody typed and that nothing has.

/// "did you mean `...`? " with the known name that is most like `name`, if more than half of it is; else nothing.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = known.into_iter().map(|known| (strsim::normalized_damerau_levenshtein(known, name), known));
    let closest = likeness.max_by(|(a, _), (b, _)| a.total_cmp(b)).filter(|(likeness, _)| *likeness > 0.5);
    closest.map_or(String::new(), |(_, known)| format!("did you mean `{known}`? "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_is_most_like_it_is_offered() {
        let known = ["wbstrm", "untar2", "fio"];
        assert_eq!(did_you_mean("wbstrn", known), "did you mean `wbstrm`? ");
        assert_eq!(did_you_mean("utnar2", known), "did you mean `untar2`? ", "two letters changed places");
        assert_eq!(did_you_mean("fsmark", known), "", "two letters of six are in their places");
        assert_eq!(did_you_mean("fio", []), "");
    }
}
