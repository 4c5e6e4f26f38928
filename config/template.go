package config

import (
	"path/filepath"
	"strconv"
	"unicode/utf8"
)

// maxTemplate bounds a file with the text of a mail, in bytes.
const maxTemplate = 1 << 20

// readTemplates reads the files that mails are made of; relative paths start
// at the configuration's folder. A reload reads them again.
func (c *Config) readTemplates(folder string) Problems {
	var problems Problems
	for i := range c.Rules {
		m := c.Rules[i].Email
		if m == nil {
			continue
		}
		at := Join(Item("rule", i), "email")
		problems = append(problems, readTemplate(folder, at, "text", m.TextFile, &m.Text)...)
		problems = append(problems, readTemplate(folder, at, "html", m.HTMLFile, &m.HTML)...)
	}
	return problems
}

func readTemplate(folder, table, key, name string, into *string) Problems {
	if name == "" {
		return nil
	}
	at := Join(table, key+"_file")
	fault := func(message, hint string) Problems { return Problems{{Path: at, Message: message, Hint: hint}} }
	if *into != "" {
		return fault("stands beside "+key, "keep one of them")
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	data, err := readRegular(name, maxTemplate)
	switch {
	case err != nil:
		return fault("the file can not be read: "+err.Error(), "a relative path starts at the folder of the configuration")
	case len(data) == 0:
		return fault(strconv.Quote(name)+" is empty", "write the template into it")
	case !utf8.Valid(data):
		return fault(strconv.Quote(name)+" is not UTF-8", "save it as UTF-8")
	}
	*into = string(data)
	return nil
}
