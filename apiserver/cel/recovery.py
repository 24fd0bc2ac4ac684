from apiserver.cel.source import Problem


def explain(text, tokens, problems, build):
    return None, problems or [Problem(0, "Syntax error: TODO")]
