module example.com/taught

go 1.21
