//! Shell completions and manual pages.

use crate::prelude::*;

/// Returns all commands as typed, read from the help texts.
fn commands(site: &DataFolder, words: &[&str]) -> Vec<String> {
    let help = site.run(&[words, &["--help"]].concat()).ok();
    let mut found = vec![[&["steward"], words].concat().join(" ")];
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        let name = line.trim_start().split(' ').next().expect("a name");
        // A long description continues on the next line.
        if name != "help" && line.starts_with("  ") && !line.starts_with("   ") {
            found.extend(commands(site, &[words, &[name]].concat()));
        }
    }
    found
}

/// Returns the warnings of `groff` about a page.
fn complaints(path: &std::path::Path) -> String {
    let mut command = tool("groff", "groff-base");
    command.args(["-man", "-Tutf8", "-ww", "-rLL=200n", "-z"]).arg(path);
    CommandOutput::new(&mut command).stderr
}

#[test]
fn every_command_has_a_valid_manual_page() {
    let site = DataFolder::empty();
    let commands = commands(&site, &[]);
    assert!(commands.len() > 25, "{commands:?}");
    assert_eq!(site.json(&["man", "pages"])["pages"], commands.len());
    for command in &commands {
        let path = site.path("pages").join(format!("{}.1", command.replace(' ', "-")));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert!(text.contains("\n.SH NAME\n") && text.contains("\n.SH SYNOPSIS\n"), "{text}");
        assert_eq!(complaints(&path), "", "{path:?}");
    }
    assert_eq!(fs::read_dir(site.path("pages")).unwrap().count(), commands.len());
    assert_eq!(site.run(&["man"]).ok().matches("\n.SH SYNOPSIS\n").count(), commands.len());
    assert_eq!(site.names(), ["pages"], "the command must not need a data file");
    fs::write(site.path("taken"), "").expect("written");
    site.run(&["man", "taken"]).assert_failed("taken: ");
}

#[test]
fn manual_pages_list_flags_and_variables_without_environment_values() {
    let site = DataFolder::empty();
    let run = |args: &[&str]| {
        let mut command = site.steward(args);
        let url = "smtps://ann:hunter2@mail.example.org";
        command.env("STEWARD_SMTP_URL", url).env("STEWARD_SMTP_FROM", "a@corp.example");
        CommandOutput::new(command.env("STEWARD_PUBLIC_URL", "https://secret.example")).ok()
    };
    for args in [&["serve", "--help"][..], &["mail", "test", "--help"]] {
        let help = run(args);
        assert!(help.contains("STEWARD_SMTP_URL") && !help.contains("hunter2"), "{help}");
    }
    run(&["man", "pages"]);
    let text = fs::read_to_string(site.path("pages/steward-serve.1")).expect("a page");
    for part in ["\\-\\-smtp\\-url", "STEWARD_SMTP_URL", "\\-\\-tls\\-cert", "STEWARD_DATA"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    for name in fs::read_dir(site.path("pages")).unwrap() {
        let text = fs::read_to_string(name.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("secret.example"), "{text}");
    }
}

#[test]
fn shell_completions_contain_every_serve_flag() {
    let site = DataFolder::empty();
    let settings = site.json(&["config"]);
    let keys: Vec<_> = settings["results"].as_array().unwrap().iter().collect();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = site.run(&["completions", shell]).ok();
        for key in &keys {
            let key = key["key"].as_str().expect("a key");
            assert!(script.contains(key), "{shell} does not know {key}");
        }
    }
    site.run(&["completions", "tcsh"])
        .assert_usage_error("[possible values: bash, elvish, fish, powershell, zsh]");
}
