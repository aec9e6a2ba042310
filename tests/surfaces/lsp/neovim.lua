-- What a user does with a source in Neovim: reads the findings, applies their fixes, asks about a tool, completes a name.
-- Writes as JSON what Neovim has then, to the file $SHOWN.
local PATIENCE = 60000

-- The findings, when their number is `wanted`.
local function findings(wanted)
  vim.wait(PATIENCE, function() return #vim.diagnostic.get(0) == wanted end, 20)
  return vim.tbl_map(function(d)
    return { d.lnum, d.col, d.end_lnum, d.end_col, d.code, d.message }
  end, vim.diagnostic.get(0))
end

-- The server's answer about a place, whose column is in bytes, and the encoding of its positions.
local function ask(method, line, column, make)
  vim.api.nvim_win_set_cursor(0, { line, column })
  local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1]
  local params = make(0, client.offset_encoding)
  params.context = { diagnostics = {}, triggerKind = 1 }
  return vim.lsp.buf_request_sync(0, method, params, PATIENCE)[client.id].result, client.offset_encoding
end

local function shown()
  local at, around = vim.lsp.util.make_position_params, vim.lsp.util.make_range_params
  local found = { before = findings(2) }
  for left, d in ipairs({ found.before[2], found.before[1] }) do
    local actions, encoding = ask("textDocument/codeAction", d[1] + left, d[2], around)
    vim.lsp.util.apply_workspace_edit(actions[1].edit, encoding)
    found.after = findings(2 - left)
  end
  found.text = vim.api.nvim_buf_get_lines(0, 0, -1, true)
  found.hover = ask("textDocument/hover", 4, 25, at).contents.value
  vim.api.nvim_buf_set_lines(0, -1, -1, true, { "    tools.move_" })
  found.names = vim.tbl_map(function(item) return item.label end, ask("textDocument/completion", 6, 15, at).items)
  return found
end

local good, result = pcall(shown)
local file = io.open(vim.env.SHOWN, "w")
file:write(vim.json.encode(good and result or { error = tostring(result) }))
file:close()
vim.cmd("qall!")
